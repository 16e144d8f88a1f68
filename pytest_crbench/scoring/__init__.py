"""How checks are decided, one folder for each scoring; `core.scoring.SCORINGS` lists them."""
