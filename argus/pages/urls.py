"""The pages of the roof: what several apps say together."""

from __future__ import annotations

from django.urls import path

from argus.pages import board, owners, purge, waiting

urlpatterns = [
    path("", board.board, name="index"),
    path("stages", board.stages, name="stages"),
    path("first", board.first, name="first"),
    path("install-line", board.install_line, name="install-line"),
    path("waiting", waiting.waiting, name="waiting"),
    path("owners", owners.switch, name="owners"),
    path("purge/", purge.purge, name="purge"),
    path("purge/do", purge.do, name="purge-do"),
    path("purge/<int:pk>/finish", purge.finish, name="purge-finish"),
]
