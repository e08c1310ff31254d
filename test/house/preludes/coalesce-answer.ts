const answer = (request: Request) => new Response(request.url)
// After the block:
if ((await (await handle(new Request('http://shop.example/'))).text()) !== 'http://shop.example/')
  throw new Error('another answer')
