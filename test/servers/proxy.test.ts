import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { untilCalm } from '../support/until.ts'
import { startProxy } from './proxy.ts'

/** A server that answers every byte with itself, and the proxy in front of it. */
async function echo(t: TestContext) {
  const taken: Socket[] = []
  const server = createServer((socket) => {
    taken.push(socket)
    socket.on('error', () => {})
    socket.pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address: AddressInfo | string | null = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  const proxy = await startProxy(address.port)
  t.after(async () => {
    await proxy.stop()
    for (const socket of taken) socket.destroy()
    server.close()
  })
  return { proxy, taken, port: address.port }
}

class Client {
  readonly socket: Socket
  heard = ''
  /** The error's code; undefined: none. */
  readonly closed: Promise<string | undefined>

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1')
    this.socket.on('data', (data) => {
      this.heard += data.toString()
    })
    const { promise, resolve } = Promise.withResolvers<string | undefined>()
    let code: string | undefined
    this.socket.on('error', (error) => {
      code = 'code' in error ? String(error.code) : error.message
    })
    this.socket.on('close', () => resolve(code))
    this.closed = promise
  }

  async says(words: string): Promise<void> {
    this.socket.write(words)
    await untilCalm(async () => this.heard.endsWith(words), `it hears ${words}`)
  }
}

test('allow forwards, much and in order, and passes on that one side ends', async (t) => {
  const { proxy } = await echo(t)
  const client = new Client(proxy.port)
  await client.says('hello')
  assert.equal(proxy.connections, 1)
  const much = 'x'.repeat(5_000_000)
  client.socket.end(much)
  await client.closed
  assert.equal(client.heard.length, 5 + much.length)
  await untilCalm(async () => proxy.connections === 0, 'it is forgotten')
})

test('cut breaks all connections on both sides; new ones work', async (t) => {
  const { proxy, taken } = await echo(t)
  const clients = [new Client(proxy.port), new Client(proxy.port)]
  for (const client of clients) await client.says('hello')
  proxy.cut()
  assert.deepEqual(await Promise.all(clients.map(({ closed }) => closed)), ['ECONNRESET', 'ECONNRESET'])
  await untilCalm(async () => taken.every((socket) => socket.destroyed), 'the server sees it')
  assert.equal(proxy.connections, 0)
  await new Client(proxy.port).says('again')
})

test('block refuses new connections, and leaves the others', async (t) => {
  const { proxy } = await echo(t)
  const old = new Client(proxy.port)
  await old.says('hello')
  await proxy.block()
  assert.equal(await new Client(proxy.port).closed, 'ECONNREFUSED')
  await old.says('still')
  await proxy.allow()
  await new Client(proxy.port).says('again')
})

test('blackhole keeps connections and forwards nothing, not even an end; allow forwards what was held', async (t) => {
  const { proxy, taken, port } = await echo(t)
  const old = new Client(proxy.port)
  await old.says('hello')
  const dead = new Client(proxy.port)
  await dead.says('hello')
  await proxy.blackhole()
  old.socket.write(' later')
  const young = new Client(proxy.port)
  young.socket.write('early')
  await once(young.socket, 'connect')
  await untilCalm(async () => proxy.connections === 3, 'the proxy has it')
  assert.equal(taken.length, 2, 'the server does not see it')
  taken[1]?.resetAndDestroy()
  // Past the proxy much comes and goes meanwhile: what would pass has had the time.
  const direct = new Client(port)
  for (let i = 0; i < 10; i++) await direct.says(`${i}`)
  direct.socket.destroy()
  assert.deepEqual([old.heard, young.heard], ['hello', ''])
  assert.ok(!dead.socket.closed)

  await proxy.allow()
  await untilCalm(async () => old.heard === 'hello later' && young.heard === 'early', 'what was held arrives')
  await dead.closed
})

test('a server that is not there breaks the connection', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  await new Promise((resolve) => server.close(resolve))
  const proxy = await startProxy(address.port)
  t.after(() => proxy.stop())
  await new Client(proxy.port).closed
  await untilCalm(async () => proxy.connections === 0, 'it is forgotten')
})
