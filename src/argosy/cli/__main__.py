"""`python -m argosy.cli`: how one of our processes starts another without asking where the script was installed."""

from argosy.cli import main

if __name__ == "__main__":
    main()
