# SPDX-License-Identifier: Apache-2.0
#
# A recipe for Spack: the folder of a package named dpgen in a repository of your own.  Where its archives are, RELEASING.md
# will say; until then it is built from a checkout: spack install dpgen@main git=URL, or spack dev-build in a clone.
from spack.package import *


class Dpgen(MakefilePackage):
    """Compile pipeline-parallel training to plain C: one straight-line source for each stage, from one YAML file."""

    license("Apache-2.0")

    version("main", branch="main")

    depends_on("c", type=("build", "run"))
    depends_on("gmake", type=("build", "run"))
    depends_on("libyaml")

    build_targets = ["all"]

    def install(self, spec, prefix):
        make("install", "PREFIX={0}".format(prefix))

    def check(self):
        make("build/unit_base")
        Executable("build/unit_base")()
