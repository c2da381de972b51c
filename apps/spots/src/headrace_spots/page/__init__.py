"""The page of the bundle: plain files, served as they are."""
