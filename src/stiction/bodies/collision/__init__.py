"""Where contacts that MuJoCo finds are mended: cylinders, heightfields; and distances between geoms."""
