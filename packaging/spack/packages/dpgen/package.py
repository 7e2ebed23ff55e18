# SPDX-License-Identifier: Apache-2.0
from spack.package import *


class Dpgen(MakefilePackage):
    """Compile pipeline-parallel training, described in one YAML file, to plain C."""

    git = "file://" + join_path(os.path.dirname(__file__), "..", "..", "..", "..")
    license("Apache-2.0")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("libyaml")

    @property
    def build_targets(self):
        return ["CC=" + spack_cc, "dpgen"]

    @property
    def install_targets(self):
        return ["CC=" + spack_cc, "PREFIX=" + self.prefix, "install"]
