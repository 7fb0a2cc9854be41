"""`python -m skill_evolution.analysis.gallery FOLDER ...`."""

import sys

from skill_evolution.analysis.gallery import main

sys.exit(main(sys.argv[1:]))
