"""The error about an invalid setting."""


class SettingError(ValueError):
    """An environment variable has an invalid value. The message names the variable and the valid values."""
