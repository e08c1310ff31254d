/** What requests about graphs of jobs take, and what they answer, as JSON Schema. */
import { JOB_STATES } from '../values/jobs/records.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import {
  anything,
  boolean,
  count,
  described,
  id,
  newJob,
  queueName,
  reply,
  request,
  state,
  text,
} from './api-schemas.ts'
import { array, integer, object, oneOf, type Schema } from './json-schema.ts'
import { LINKS, MAX_PARENTS } from './link-schemas.ts'

/** Most jobs of a request, and most queues that they are of. */
const MAX_JOBS = DEFAULTS.graph.jobs
export const MAX_QUEUES = 100

const place: Schema<number | string> = {
  description: 'a place in the list, from 0, or the id of a job that the store has',
  anyOf: [integer(0, MAX_JOBS - 1), id],
}
const { data, after: _, ...options } = newJob.properties ?? {}

/** A job of a push of several, as its handler gets it. */
export interface GraphJobBody {
  queue: string
  data: unknown
  id?: string
  after?: (number | string)[]
  runAt?: number | string
  delay?: number
}

const graphJob = request(
  'GraphJob',
  { queue: queueName, data: data ?? anything },
  {
    ...options,
    after: array(place, {
      maxItems: MAX_PARENTS,
      description: 'The jobs that it waits for: places in the list, or ids.',
    }),
    onDead: LINKS.onDead,
  },
  newJob.not === undefined ? {} : { not: newJob.not },
) as Schema<GraphJobBody>
export const newGraph = request(
  'NewGraph',
  { jobs: array(graphJob, { minItems: 1, description: `At most ${MAX_JOBS}, of at most ${MAX_QUEUES} queues.` }) },
  {},
)

const node = object({
  ...{ id, queue: text, state, onDead: oneOf(['cancel', 'run']) },
  parents: array(id, { description: 'The jobs that it waits or waited for; those that are gone may be missing.' }),
  children: array(id, { description: 'The jobs that wait or waited for it.' }),
})
export const graph = reply('Graph', {
  nodes: array(node, { description: 'The job itself first, then those next to it, and so on.' }),
  counts: object(Object.fromEntries(JOB_STATES.map((one) => [one, count]))),
  left: described(count, 'How many of the nodes have not ended.'),
  more: described(boolean, 'There are jobs beyond the limit.'),
})
export const GRAPH_QUERY = {
  limit: integer(1, MAX_JOBS, { default: 1000, description: 'Most jobs that are looked at.' }),
}

const parent = object(
  { id, state: oneOf([...JOB_STATES, 'gone']) },
  { queue: text, result: anything, error: object({ name: text, message: text, code: text }) },
)
export const parentList = reply(
  'Parents',
  { jobs: array(parent, { description: 'By id. `gone`: the store does not know it any more.' }) },
  { next: described(id, 'Give it as `after` for the next page; left out on the last one.') },
)
export const PARENTS_QUERY = {
  limit: integer(1, 1000, { default: 100, description: 'Most jobs of a page.' }),
  after: described(id, '`next` of the page before.'),
}
