/** A Redis list, written by hand: whoever dies between the pop and the insert loses a row. */
import { Redis } from 'ioredis'
import { newId } from '../../../src/values/jobs/ids.ts'
import type { Consume, Serve } from '../service.ts'
import { Users } from '../users.ts'

const LIST = 'users'

export const serve: Serve = async ({ redis }) => {
  const client = new Redis(redis)
  return {
    async accept(name) {
      const id = newId()
      await client.lpush(LIST, JSON.stringify({ id, name }))
      return id
    },
  }
}

export const serveAndConsume: Serve = async (places) => {
  await consume(places)
  return serve(places)
}

/** One insert per message, as published. */
export const consume: Consume = async ({ redis, postgres }) => {
  const client = new Redis(redis)
  const users = new Users(postgres, 1)
  const loop = async () => {
    for (;;) {
      const [, message = ''] = (await client.brpop(LIST, 0)) ?? []
      await users.insert((JSON.parse(message) as { name: string }).name)
    }
  }
  void loop()
}
