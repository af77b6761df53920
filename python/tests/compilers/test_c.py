"""The page of kernels in C."""

import pages


def test_the_page(tmp_path):
    pages.check("c", tmp_path)
