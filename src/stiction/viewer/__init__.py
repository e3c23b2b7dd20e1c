"""For people: a scene in the browser, in a window, as video, as a page that replays itself, in a notebook; plots."""
