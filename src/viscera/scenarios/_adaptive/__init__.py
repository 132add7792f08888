"""The five scenarios of adaptive water: what they share."""
