/**
 * A TCP proxy in front of a server, for tests of what a bad network does.
 *
 * It forwards (`allow`, as it begins), refuses new connections (`block`; those that are open go on), or swallows
 * everything (`blackhole`: connections open and stay open, and nothing passes in either direction, not even that the
 * other side is gone; what was swallowed is forwarded after `allow`). `mute` swallows answers alone, and `abandon` silences the open connections
 * for good, while new ones work. `resetAt` resets the connection in place of an answer. `slow` forwards what clients send at a bounded pace. `cut` breaks all open connections in any of these.
 */

import { connect, createServer, type Server, type Socket } from 'node:net'
import { Transform } from 'node:stream'
import { freePort } from './ports.ts'

interface Link {
  client: Socket
  /** Connected when the first byte may pass. */
  server: Socket | undefined
  /** Nothing passes any more, whatever the proxy does otherwise. */
  abandoned?: boolean
}

export class TcpProxy {
  readonly port: number
  #target: number
  readonly #links = new Set<Link>()
  #listener: Server | undefined
  #swallows = false
  /** Bytes a second, from clients. */
  #pace = Number.POSITIVE_INFINITY
  #resetsAt: string | undefined

  constructor(port: number, target: number) {
    this.port = port
    this.#target = target
  }

  /** Open connections of clients. */
  get connections(): number {
    return this.#links.size
  }

  /** Forwards. */
  async allow(): Promise<void> {
    this.#swallows = false
    for (const link of this.#links) if (link.abandoned !== true) this.#join(link)
    await this.#listen()
  }

  /** Refuses new connections. */
  async block(): Promise<void> {
    const listener = this.#listener
    this.#listener = undefined
    // It closes when its connections have; that it listens no more is so at once.
    listener?.close()
  }

  /** Takes connections, and forwards nothing of any. */
  async blackhole(): Promise<void> {
    this.#swallows = true
    for (const { client, server } of this.#links) {
      client.unpipe()
      server?.unpipe()
      client.pause()
      server?.pause()
    }
    await this.#listen()
  }

  /**
   * Swallows what the server answers; what clients send is forwarded.
   * @param only the place of the one open connection to mute; new ones work
   */
  mute(only?: number): void {
    if (only !== undefined) {
      const link = [...this.#links][only]
      link?.server?.unpipe()
      link?.server?.pause()
      return
    }
    this.#swallows = true
    for (const { server } of this.#links) {
      server?.unpipe()
      server?.pause()
    }
  }

  /** What is open now stays open, and nothing passes there any more; connections that are made from now on work. */
  abandon(): void {
    for (const link of this.#links) {
      link.client.unpipe()
      link.server?.unpipe()
      link.client.pause()
      link.server?.pause()
      link.abandoned = true
    }
  }

  /** Resets a connection in place of an answer with this text, as a system may when the server closes it with bytes unread. */
  resetAt(text: string): void {
    this.#resetsAt = text
  }

  /** New connections go to another server. */
  retarget(port: number): void {
    this.#target = port
  }

  /** What clients send passes at this pace, in bytes a second, on connections that are open or will be. */
  slow(pace: number): void {
    this.#pace = pace
    for (const { client, server } of this.#links) {
      client.unpipe()
      if (server !== undefined) client.pipe(slowed(pace)).pipe(server)
    }
  }

  /** Breaks all open connections. */
  cut(): void {
    for (const { client, server } of this.#links) {
      reset(client)
      if (server !== undefined) reset(server)
    }
    this.#links.clear()
  }

  async stop(): Promise<void> {
    await this.block()
    this.cut()
  }

  async #listen(): Promise<void> {
    if (this.#listener !== undefined) return
    const listener = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => {
      const link: Link = { client, server: undefined }
      this.#links.add(link)
      this.#watch(link, client)
      if (!this.#swallows) this.#join(link)
    })
    this.#listener = listener
    await new Promise<void>((resolve, reject) => {
      listener.once('error', reject)
      listener.listen(this.port, '127.0.0.1', resolve)
    })
  }

  #join(link: Link): void {
    const { client } = link
    if (link.server === undefined) {
      link.server = connect({ port: this.#target, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
      client.setNoDelay()
      this.#watch(link, link.server)
    }
    if (client.destroyed || link.server.destroyed) {
      this.#end(link)
      return
    }
    // What was only muted passes in one direction already.
    client.unpipe()
    if (this.#pace === Number.POSITIVE_INFINITY) client.pipe(link.server)
    else client.pipe(slowed(this.#pace)).pipe(link.server)
    if (this.#resetsAt === undefined) link.server.pipe(client)
    else link.server.pipe(this.#guarded(link, this.#resetsAt)).pipe(client)
  }

  #guarded(link: Link, text: string): Transform {
    return new Transform({
      transform(chunk, _, done) {
        if (!chunk.includes(text)) return done(null, chunk)
        reset(link.client)
        if (link.server !== undefined) reset(link.server)
      },
    })
  }

  #watch(link: Link, socket: Socket): void {
    // What ended it does not matter: the close that follows is passed on.
    socket.on('error', () => {})
    socket.on('close', () => {
      if (!this.#swallows && link.abandoned !== true) this.#end(link)
    })
  }

  #end(link: Link): void {
    this.#links.delete(link)
    link.client.destroy()
    link.server?.destroy()
  }
}

/** @param target port of the server on this machine */
export async function startProxy(target: number): Promise<TcpProxy> {
  const proxy = new TcpProxy(await freePort(), target)
  await proxy.allow()
  return proxy
}

function slowed(pace: number): Transform {
  return new Transform({
    transform(chunk, _, done) {
      setTimeout(() => done(null, chunk), (chunk.length / pace) * 1000)
    },
  })
}

/** Not while its own end is going out: libuv refuses that, Node then never closes it, and its process spins when it is to end. */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}
