# SPDX-License-Identifier: Apache-2.0
"""Lets `python -m gml_run` do what the gml-run command does."""

from gml_run.cli.entry import main

if __name__ == "__main__":
    main()
