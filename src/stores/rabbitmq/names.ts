/** What the exchanges, queues and headers in RabbitMQ are called: contract/rabbitmq/README.md. */

/** A queue of RabbitMQ that holds waiting jobs of one priority: `4`, or `4.again` for jobs that come back. FOREIGN: a queue of others. */
export type Line = string
export const FOREIGN: Line = ''

export class Names {
  readonly prefix: string

  constructor(prefix: string) {
    this.prefix = prefix
  }

  /** The stream that says which lines and settings there are. */
  get log(): string {
    return `${this.prefix}.log`
  }

  /** The exchange by which delayed jobs come back to their lines. */
  get router(): string {
    return this.prefix
  }

  /** Exchange and queue of delayed jobs whose queue is gone. */
  get unrouted(): string {
    return `${this.prefix}.unrouted`
  }

  /** Exchange and queue that hold a job for so many milliseconds. */
  delay(ms: number): string {
    return `${this.prefix}.delay.${ms}`
  }

  line(queue: string, line: Line): string {
    return line === FOREIGN ? queue : `${this.prefix}.jobs.${queue}.${line}`
  }

  dead(queue: string): string {
    return this.line(queue, 'dead')
  }
}

export const priorityOf = (line: Line): number => (line === FOREIGN ? 4 : Number(line[0]))
export const isAgain = (line: Line): boolean => line.endsWith('.again')
export const againOf = (priority: number): Line => `${priority}.again`

const PREFIX = 'millpond-'
/** `place`: orders jobs of a priority; the time of the push in µs, or one more than that of the push before. */
export const HEADER = {
  place: `${PREFIX}place`,
  attempts: `${PREFIX}attempts`,
  /** How many attempts were started and count. */
  attempt: `${PREFIX}attempt`,
  /** Of the last claim. */
  fence: `${PREFIX}fence`,
  pushed: `${PREFIX}pushed`,
  due: `${PREFIX}due`,
  /** Milliseconds of a delay that are left once the message leaves its delay queue. */
  remaining: `${PREFIX}remaining`,
  group: `${PREFIX}group`,
  timeout: `${PREFIX}timeout`,
  error: `${PREFIX}error`,
  trace: 'traceparent',
} as const

/** Of the program that published the message. */
export const isOwnHeader = (name: string): boolean => name.startsWith(PREFIX)
/** Of the broker, about one message: a copy must not have them. */
export const isBrokerHeader = (name: string): boolean =>
  /^x-(?:delivery-count|acquired-count|death|(?:first|last)-death-\w+)$/.test(name)
