/**
 * The names of objects' properties, kept once for all values: a record in MessagePack then begins with the number of its structure.
 *
 * The table is a list in Redis: its id, then a JSON array of names for each structure. It only grows, by compare and
 * set, so a number of a table never changes its meaning. A writer that meets new structures first adds them to the list, and packs the
 * value anew if another process has added some meanwhile. A reader must know as many structures as the value says, and uses only those that
 * it has read from Redis. If the list is lost, the next one has another id, and values of the old one are misses.
 */
import { randomBytes } from 'node:crypto'
import { Packr, Unpackr } from 'msgpackr'
import type { RedisLayer } from './redis-layer.ts'

/** The part of the Redis layer that reads and extends the list. */
export type StructureList = Pick<RedisLayer, 'load' | 'append'>

/** Objects that are used as maps have names of their own each; they stay out, and so do all beyond the most. */
const MAX_STRUCTURES = 512
const MAX_NAMES = 64
const PACK_ATTEMPTS = 32

export interface PackedRecords {
  /** The id of the list, as a number. */
  table: number
  /** How many of its structures must be known. */
  structures: number
  body: Buffer
}

/** References of MessagePack are off: with them, a few bytes can stand for a value that takes years to walk. */
const OPTIONS = {
  maxSharedStructures: MAX_STRUCTURES,
  int64AsType: 'bigint',
  variableMapSize: true,
  structuredClone: false,
} as const

class Table {
  readonly id: string
  /** Confirmed: they are in Redis. */
  saved: string[][]
  /** The packer's own array, longer than `saved` where it came upon new ones. */
  readonly known: string[][]
  readonly packr: Packr
  #unpackr: Unpackr | undefined

  constructor(id: string, saved: string[][]) {
    this.id = id
    this.saved = saved
    this.known = saved.map((names) => [...names])
    this.packr = new Packr({
      ...OPTIONS,
      structures: this.known,
      shouldShareStructure: (names) => names.length <= MAX_NAMES,
    })
  }

  /** Reads with a copy, which hostile bytes may spoil: then the next read begins with another. */
  unpack(body: Buffer): unknown {
    const { saved } = this
    const unpackr = this.#unpackr ?? new Unpackr({ ...OPTIONS, getStructures: () => saved.map((names) => [...names]) })
    this.#unpackr = undefined
    const value: unknown = unpackr.unpack(body)
    this.#unpackr = unpackr
    return value
  }

  confirm(structures: readonly string[][]): void {
    this.saved = [...this.saved, ...structures]
    this.#unpackr = undefined
  }
}

export class RecordStructures {
  readonly #list: StructureList
  #table: Table | undefined
  /** Under way, if they are. */
  #loading: Promise<Table> | undefined
  #saving: Promise<void> | undefined

  constructor(list: StructureList) {
    this.#list = list
  }

  /** @throws TypeError where the list is no table, and what the list throws */
  async pack(value: unknown): Promise<PackedRecords> {
    for (let attempt = 0; attempt < PACK_ATTEMPTS; attempt++) {
      const table = this.#table ?? (await this.#load())
      const body = table.packr.pack(value)
      const structures = table.known.length
      while (this.#table === table && table.saved.length < structures) {
        this.#saving ??= this.#save(table).finally(() => {
          this.#saving = undefined
        })
        await this.#saving
      }
      if (this.#table === table) return { table: Number.parseInt(table.id, 16), structures, body }
    }
    throw new TypeError('other processes add structures all the time')
  }

  /** @throws TypeError, RangeError, msgpackr's own, and what the list throws */
  async unpack({ table: id, structures, body }: PackedRecords): Promise<unknown> {
    let table = this.#table
    if (table === undefined || !covers(table, id, structures)) table = await this.#load()
    if (!covers(table, id, structures)) throw new TypeError('its table of structures is not there')
    return table.unpack(body)
  }

  #load(): Promise<Table> {
    this.#loading ??= this.#loaded().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  async #loaded(): Promise<Table> {
    const [id, ...texts] = await this.#list.load(randomBytes(4).toString('hex'))
    if (id === undefined || !/^[0-9a-f]{8}$/.test(id) || texts.length > MAX_STRUCTURES) {
      throw new TypeError('the list of structures is not one')
    }
    this.#table = new Table(id, texts.map(parse))
    return this.#table
  }

  async #save(table: Table): Promise<void> {
    const { id, saved, known } = table
    const added = known.slice(saved.length).map((names) => [...names])
    const texts = added.map((names) => JSON.stringify(names))
    if (await this.#list.append(id, saved.length, texts)) table.confirm(added)
    else await this.#load()
  }
}

const covers = (table: Table, id: number, structures: number): boolean =>
  Number.parseInt(table.id, 16) === id && table.saved.length >= structures

function parse(text: string): string[] {
  const names: unknown = JSON.parse(text)
  if (Array.isArray(names) && names.every((name) => typeof name === 'string')) return names
  throw new TypeError('a structure is not an array of names')
}
