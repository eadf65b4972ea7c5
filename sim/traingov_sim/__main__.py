"""`python -m traingov_sim`."""

from .cli import main

if __name__ == "__main__":
    main()
