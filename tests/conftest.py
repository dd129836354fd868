# SPDX-License-Identifier: Apache-2.0
"""Fixtures for all Python tests."""

pytest_plugins = ["launcher_fixtures"]
