/**
 * A job as its followers see it. Each look at the job is rendered once for all of them, so a thousand followers of a job with a large
 * progress cost one rendering.
 */
import { createHash } from 'node:crypto'
import type { Format } from '../values/encoding/accept.ts'
import type { JobInfo } from '../values/jobs/job.ts'
import { encodedBody, jsonText } from './answer.ts'
import { type JobView, jobView } from './job-view.ts'

const renderings = new WeakMap<JobInfo, RenderedJob>()

/** @param job as one look found it; the same object gets the same rendering */
export function rendered(job: JobInfo): RenderedJob {
  const known = renderings.get(job) ?? new RenderedJob(job)
  renderings.set(job, known)
  return known
}

export class RenderedJob {
  readonly #view: JobView
  readonly #encoded = new Map<string, Uint8Array<ArrayBuffer>>()
  #tag: string | undefined
  #stateTag: string | undefined

  constructor(job: JobInfo) {
    this.#view = jobView(job)
  }

  /** A weak entity tag. The expected start is not part of it, because that changes with every look. */
  get tag(): string {
    this.#tag ??= tagOf(this.#view)
    return this.#tag
  }

  /** The same without the progress and the log. */
  get stateTag(): string {
    const { progress: _progress, log: _log, ...state } = this.#view
    this.#stateTag ??= tagOf(state)
    return this.#stateTag
  }

  /** The body of an answer. */
  body(format: Format, expectedStart: string | undefined): Uint8Array<ArrayBuffer> {
    return this.#once(`${format} ${expectedStart}`, () => encodedBody(format, this.#shown(expectedStart)))
  }

  /** A server-sent event. */
  event(name: string, id: string | undefined, expectedStart: string | undefined): Uint8Array<ArrayBuffer> {
    return this.#once(`${name} ${id} ${expectedStart}`, () => eventOf(name, id, this.#shown(expectedStart)))
  }

  #shown(expectedStart: string | undefined): JobView {
    return expectedStart === undefined ? this.#view : { ...this.#view, expectedStart }
  }

  #once(key: string, render: () => Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
    const known = this.#encoded.get(key) ?? render()
    this.#encoded.set(key, known)
    return known
  }
}

/** @param id undefined: the event has none */
export function eventOf(name: string, id: string | undefined, data: object): Uint8Array<ArrayBuffer> {
  return Buffer.from(`event: ${name}\n${id === undefined ? '' : `id: ${id}\n`}data: ${jsonText(data)}\n\n`)
}

function tagOf(view: object): string {
  return `W/"${createHash('sha256').update(jsonText(view)).digest('base64url').slice(0, 22)}"`
}
