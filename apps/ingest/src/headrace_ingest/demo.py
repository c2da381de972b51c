"""Demo."""


async def demo(app, setup): ...
