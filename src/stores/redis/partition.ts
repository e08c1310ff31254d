/** Where a part of a queue lives: keys under one hash tag, and so in one slot of a cluster. Most queues have one part. */
import { Packer } from './packer.ts'
import { type ScriptName, scriptOf } from './scripts.ts'

/** The hash tag of a queue's part. Neither "#" nor ":" can be in a prefix, nor "#" in a queue's name, so no two tags are the same. */
export function tagOf(prefix: string, queue: string, index: number): string {
  return index === 0 ? `{${prefix}:${queue}}` : `{${prefix}:${queue}#${index}}`
}

export class Partition {
  readonly queue: string
  readonly index: number
  readonly tag: string
  /** How each call begins that does not bring a time of its own: [false, bell, …, without the head of the list. */
  readonly bell: Buffer
  readonly #keys = new Map<ScriptName, readonly string[]>()

  /** @param channel where bells are rung @param origin names this process's store */
  constructor(prefix: string, queue: string, index: number, channel: string, origin: string) {
    this.queue = queue
    this.index = index
    this.tag = tagOf(prefix, queue, index)
    const packer = new Packer()
    packer.list(3)
    packer.text(channel)
    packer.nested(() => {
      packer.text(origin)
      packer.text(queue)
    })
    packer.text(origin)
    this.bell = packer.take()
  }

  keys(name: ScriptName): readonly string[] {
    let keys = this.#keys.get(name)
    if (keys === undefined) {
      keys = scriptOf(name).keys.map((key) => `${this.tag}:${key}`)
      this.#keys.set(name, keys)
    }
    return keys
  }
}
