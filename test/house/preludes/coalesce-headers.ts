const request = new Request('http://shop.example/')
const { signal } = new AbortController()
const fetchHeaders = async (of: Request) => ({ url: of.url })
