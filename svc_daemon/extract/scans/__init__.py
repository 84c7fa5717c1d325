"""Text in pictures: pages as pixels, the recogniser, and the order in which its lines are read."""
