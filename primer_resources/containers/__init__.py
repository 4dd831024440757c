"""Containers: mails and archives, and the files inside them that become documents of their own."""
