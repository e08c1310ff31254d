/**
 * Which process of the server a connection goes to: its `run_id`, which a restart and a failover change. Claims state it, so that a server
 * that may have lost the last ones gives out no fence twice (contract/redis/claim.lua).
 *
 * A connection goes to one process for as long as it is open. So what was learnt over it holds until it closes, and for every call that is
 * written to it. Where calls may take other ways, the script asks the server itself, at each claim: on a cluster, through a client of the
 * caller's own, which may send by itself what it had queued for another connection, and for calls that are sent again.
 */
import type { Client } from './link.ts'

export class ServerRun {
  #id: string | null = null
  #connection = 0

  /** @param own the client is the store's own */
  constructor(client: Client, own: boolean) {
    if (!own || 'nodes' in client) return
    const learn = async (): Promise<void> => {
      const connection = this.#connection
      const id = runOf(await client.info('server'))
      if (connection === this.#connection) this.#id = id
    }
    // Until it is known, the script asks.
    const ready = () => void learn().catch(() => undefined)
    client.on('close', () => {
      this.#connection++
      this.#id = null
    })
    client.on('ready', ready)
    if (client.status === 'ready') ready()
  }

  /** null: the script is to ask. */
  get id(): string | null {
    return this.#id
  }
}

/** As much of it as the script keeps. */
function runOf(info: string): string | null {
  return /^run_id:([0-9a-f]{16})/m.exec(info)?.[1] ?? null
}
