"""Asks `whit mcp` by the client of the protocol's authors: ask_mcp.py WHIT RECORDING."""

import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    server = StdioServerParameters(command=sys.argv[1], args=["mcp"])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        result = await session.call_tool("brief", {"recording": sys.argv[2]})
        print(json.dumps({"tools": [tool.name for tool in tools], "text": result.content[0].text}))

asyncio.run(main())
