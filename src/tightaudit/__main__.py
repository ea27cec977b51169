"""`python -m tightaudit` is the command line."""

from tightaudit.cli.main import main

if __name__ == "__main__":
    main()
