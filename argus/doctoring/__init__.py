"""What the doctor looks at, one file for each ground that Argus stands on."""
