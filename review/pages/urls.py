"""The addresses of review's pages, below the admin site."""

from __future__ import annotations

from django.urls import path

from review.pages import feed, holds, parked, rejections, tasks

urlpatterns = [
    path("review/", holds.holds, name="review"),
    path("review/bulk", holds.bulk, name="review-bulk"),
    path("review/<int:pk>/", holds.hold, name="review-hold"),
    path("review/<int:pk>/edit", holds.edit_approve, name="review-edit"),
    path("review/<int:pk>/<str:verb>", holds.decide, name="review-decide"),
    path("rejections/", rejections.rejections, name="rejections"),
    path("rejections/<int:pk>/", rejections.rejection, name="rejection"),
    path("rejections/facts/<int:pk>/lift", rejections.lift, name="rejection-lift"),
    path("rejections/<int:pk>/<str:verb>", rejections.decide, name="rejection-decide"),
    path("parked/", parked.parked, name="parked"),
    path("parked/release-all", parked.release_all, name="parked-release-all"),
    path("parked/<int:pk>/", parked.unit, name="parked-unit"),
    path("parked/<int:pk>/release", parked.release, name="parked-release"),
    path("parked/<int:pk>/dismiss", parked.dismiss, name="parked-dismiss"),
    path("tasks/", tasks.tasks, name="tasks"),
    path("tasks/<int:pk>/", tasks.task, name="task"),
    path("tasks/<int:pk>/<str:verb>", tasks.decide, name="task-decide"),
    path("feed/", feed.feed, name="feed"),
    path("feed/next", feed.next_card, name="feed-next"),
    path("feed/draws/", feed.draws, name="feed-draws"),
    path("feed/<uuid:pk>/rate", feed.rate, name="feed-rate"),
    path("feed/<uuid:pk>/<str:verb>", feed.act, name="feed-act"),
]
