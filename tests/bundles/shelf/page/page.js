fetch("books");
