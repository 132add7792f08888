"""Blood: the film on organs, wounds that feed it, drops in the air. Start with `film`."""
