"""The node: router, scheduler, engines and server. Runs on one asyncio thread; imports no Qt."""
