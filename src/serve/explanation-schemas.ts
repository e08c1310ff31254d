/** Why a job does not run, as JSON Schema. */
import { boolean, count, described, groupName, id, nullable, orNull, reply, state, text, time } from './api-schemas.ts'
import { array, object, oneOf } from './json-schema.ts'

const reason = object(
  {
    kind: oneOf([
      'parents',
      'parked',
      'follows',
      'due',
      'noWorker',
      'paused',
      'queueLimit',
      'queueRate',
      'groupLimit',
      'groupRate',
      'behind',
    ]),
  },
  {
    at: time,
    until: time,
    group: groupName,
    running: count,
    limit: orNull,
    jobs: count,
    more: boolean,
    parents: array(object({ id, queue: text, state }), { description: 'The first ten that it waits for.' }),
    lastClaim: nullable(time),
    key: text,
    waits: array(object({ kind: text, name: text, until: nullable(time), child: nullable(id) }), {
      description: 'What a parked job waits for.',
    }),
  },
)
export const explanation = reply('Explanation', {
  ...{ id, queue: text, state, text: described(text, 'The reasons in words.') },
  reasons: array(reason, { description: 'All that holds it back now; none if nothing does, or if it does not wait.' }),
})
