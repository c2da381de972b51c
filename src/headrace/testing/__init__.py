"""For tests of programs that use Headrace."""
