declare const Deno: { serve(handler: (request: Request) => Promise<Response>): void }
declare const token: string
