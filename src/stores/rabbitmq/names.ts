/** What the exchanges, queues and headers in RabbitMQ are called: contract/rabbitmq/README.md. */

/** A queue of RabbitMQ that holds waiting jobs of one priority: `4`, or `4.again` for jobs that come back. FOREIGN: a queue of others. */
export type Line = string
export const FOREIGN: Line = ''
/** The queue of the dead jobs. */
export const DEAD: Line = 'dead'
export const priorityOf = (line: Line): number => (line === FOREIGN ? 4 : Number(line[0]))
export const againOf = (priority: number): Line => `${priority}.again`

export class Names {
  /** The exchange that says which lines were made. */
  readonly lines: string
  /** The exchange by which delayed jobs come back to their lines. */
  readonly due: string
  /** Exchange and queue of delayed jobs whose line is gone. */
  readonly unrouted: string
  readonly #prefix: string

  constructor(prefix: string) {
    this.#prefix = prefix
    this.lines = `${prefix}.lines`
    this.due = `${prefix}.due`
    this.unrouted = `${prefix}.unrouted`
  }

  line(queue: string, line: Line): string {
    return line === FOREIGN ? queue : `${this.#prefix}.jobs.${queue}.${line}`
  }

  /** Exchange and queue in which a delayed job spends so many milliseconds. */
  wait(ms: number): string {
    return `${this.#prefix}.wait.${ms}`
  }
}

const PREFIX = 'millpond-'
/** `place`: the order of the jobs of a priority, by the time of the push in µs. `attempt`, `fence`: before the present claim. */
export const HEADER = {
  ...{ place: `${PREFIX}place`, pushed: `${PREFIX}pushed`, due: `${PREFIX}due`, group: `${PREFIX}group` },
  ...{ attempts: `${PREFIX}attempts`, attempt: `${PREFIX}attempt`, fence: `${PREFIX}fence` },
  ...{ timeout: `${PREFIX}timeout`, error: `${PREFIX}error`, trace: 'traceparent' },
  /** The id that another program gave its message, if it is no UUID. */
  message: `${PREFIX}message`,
  /** Of a dead job: headers of another program, or part of its error, could not be written. */
  leftOut: `${PREFIX}left-out`,
} as const
/** Set for each wait that the job is to spend. */
export const waitHeader = (ms: number): string => `${PREFIX}wait-${ms}`

/** Headers of the program that published the message. */
export const isForeignHeader = (name: string): boolean => !name.startsWith(PREFIX) && !isBrokerHeader(name)
/** Headers about one publication, one delivery or one delay. A copy of the message must not have them. */
export const isPassingHeader = (name: string): boolean =>
  // RabbitMQ sends a message to the queues that these name, too.
  /^B?CC$/.test(name) || isBrokerHeader(name) || name.startsWith(waitHeader(0).slice(0, -1))
const isBrokerHeader = (name: string): boolean =>
  /^x-(?:delivery-count|acquired-count|death|(?:first|last)-death-\w+|stream-offset)$/.test(name)
