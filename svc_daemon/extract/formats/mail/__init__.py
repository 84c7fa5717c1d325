"""Mails, as files of mail programs and of Outlook."""
