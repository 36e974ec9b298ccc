# SPDX-License-Identifier: BSD-3-Clause
"""Recipe for Spack 1.0 and later: put it into a repository of your own, packages/uci/package.py (docs/admin.md)."""
from spack.package import *
from spack_repo.builtin.build_systems.meson import MesonPackage


class Uci(MesonPackage):
    """Verifies and repairs the messages of unmodified MPI programs over UCX: a digest on every tag-matched message, checked
    at the receiver, and what arrived damaged fetched again."""

    homepage = "https://openucx.org"
    # UCI has no public home: where its clone lies is for the site to say, here or with `spack develop`
    git = "file:///usr/local/src/uci"

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("tools", default=True, description="uci_run, uci_info, uci_top, uci_report and others, and libuci")
    variant("mpi", default=False, when="+tools", description="also what of these runs as ranks of a job")

    depends_on("c", type="build")
    depends_on("meson@1.0:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("ucx@1.13:")
    depends_on("xxhash", type="build")
    depends_on("isa-l")
    depends_on("jansson")
    depends_on("openssl@3:")
    depends_on("ncurses", when="+tools")
    depends_on("rdma-core", when="+tools")
    depends_on("mpi", when="+mpi")
    depends_on("python@3.9:", when="+tools", type="run")
    depends_on("py-jinja2", when="+tools", type="run")  # uci_report; its page needs D3 as well, from npm: uci_report(1), --d3

    def meson_args(self):
        tools = "enabled" if self.spec.satisfies("+tools") else "disabled"
        return ["-Dtests=disabled", f"-Dtools={tools}"]

    def setup_run_environment(self, env):
        # `spack load uci` switches it on; UCX opens the library by itself from 1.22 on
        libraries = find_libraries("libucx_integrity", self.prefix, shared=True, recursive=True)
        if self.spec.satisfies("^ucx@1.22:"):
            env.prepend_path("UCX_PLUGIN_PATH", join_path(libraries.directories[0], "uci"))
        else:
            env.prepend_path("LD_PRELOAD", libraries[0])
        # found by name when needed
        for name in ("isa-l", "jansson", "openssl"):
            env.prepend_path("LD_LIBRARY_PATH", self.spec[name].prefix.lib)
