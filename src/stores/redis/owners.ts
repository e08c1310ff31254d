/**
 * Which partition knows a job, by its id alone, which does not name its queue. This process remembers the partitions of the jobs that it
 * pushed last. For other ids, one call asks all partitions of a bucket, so a look-up takes at most `BUCKETS` calls for any number of
 * queues.
 */
import { MillpondError } from '../../values/errors/errors.ts'
import type { StoreContext } from './context.ts'
import type { Partition } from './partition.ts'
import { askEach, chunks, Failures } from './per-partition.ts'
import { idBytes, numberIn } from './wire.ts'

/**
 * The answer of the first partition that knows the id, which is asked once for each time that it is named. Queues that are new to this
 * process are asked for what the others don't know. Rejects where nobody that answered knows an id, and somebody did not answer.
 */
export async function askOwnersOf<Item extends { id: string }, Answer>(
  context: StoreContext,
  items: readonly Item[],
  call: (partition: Partition, items: readonly Item[]) => Promise<readonly (Answer | null)[]>,
): Promise<(Answer | null)[]> {
  const { calls, queues, locations } = context
  calls.assertOpen()
  const answers: (Answer | null)[] = items.map(() => null)
  const failures = new Failures()
  const askThere = async (locationOf: (id: string) => Partition | undefined): Promise<void> => {
    const open = ({ id }: Item, at: number) => (answers[at] === null ? locationOf(id) : undefined)
    for (const [at, answer] of (await askEach(items, open, call)).entries()) {
      if (answer instanceof MillpondError) await failures.noted(Promise.reject(answer))
      else if (answer !== undefined) answers[at] = answer
    }
  }
  const askAmong = async (partitions: readonly Partition[]): Promise<void> => {
    const unknown = [...new Set(items.filter((_, at) => answers[at] === null).map(({ id }) => id))]
    if (unknown.length === 0 || partitions.length === 0) return
    const located = await locate(context, partitions, unknown, failures)
    await askThere((id) => located.get(id))
  }
  await askThere((id) => locations.get(id))
  const known = new Set([...queues.allKnown().values()].flat())
  await askAmong([...known])
  if (answers.includes(null)) {
    const listed = (await failures.noted(queues.all())) ?? new Map<string, readonly Partition[]>()
    await askAmong([...listed.values()].flat().filter((partition) => !known.has(partition)))
  }
  if (answers.includes(null)) failures.throwFirst()
  return answers
}

/** As `askOwnersOf`. */
export const askOwners = <Answer>(
  context: StoreContext,
  ids: readonly string[],
  call: (partition: Partition, ids: readonly string[]) => Promise<readonly (Answer | null)[]>,
): Promise<(Answer | null)[]> =>
  askOwnersOf<{ id: string }, Answer>(
    context,
    ids.map((id) => ({ id })),
    (partition, own) =>
      call(
        partition,
        own.map(({ id }) => id),
      ),
  )

/** The partitions of those jobs that are known, by id. */
export async function whereAre(context: StoreContext, ids: readonly string[]): Promise<Map<string, Partition>> {
  const unique = [...new Set(ids)]
  if (unique.length === 0) return new Map()
  const homes = await askOwners<Partition>(context, unique, async (partition, own) =>
    (await areIn(context, partition, own)).map((isIn) => (isIn ? partition : null)),
  )
  return new Map(unique.flatMap((id, at) => (homes[at] ? [[id, homes[at]] as const] : [])))
}

/** Per id whether the partition knows it. */
async function areIn({ calls }: StoreContext, partition: Partition, ids: readonly string[]): Promise<boolean[]> {
  const target = { tag: partition.tag, keys: [partition.key('jobs')] }
  return (await calls.script('locate', target, ids.map(idBytes))).map((answer) => answer === 1)
}

/** Keys and ids of one call to `locate`, which looks each up in each. */
const MAX_KEYS_PER_CALL = 250
const MAX_LOOKS_PER_CALL = 5_000

async function locate(
  { calls }: StoreContext,
  partitions: readonly Partition[],
  ids: readonly string[],
  failures: Failures,
): Promise<Map<string, Partition>> {
  const located = new Map<string, Partition>()
  const ask = async (tag: string, some: readonly Partition[], asked: readonly string[]) => {
    const keys = some.map((partition) => partition.key('jobs'))
    const numbers = await calls.script('locate', { tag, keys }, asked.map(idBytes))
    for (const [i, id] of asked.entries()) {
      const partition = some[numberIn(numbers[i]) - 1]
      if (partition !== undefined) located.set(id, partition)
    }
  }
  const byTag = Map.groupBy(partitions, ({ tag }) => tag)
  await Promise.all(
    [...byTag].flatMap(([tag, all]) =>
      chunks(all, MAX_KEYS_PER_CALL).flatMap((some) =>
        chunks(ids, Math.floor(MAX_LOOKS_PER_CALL / some.length)).map((asked) => failures.noted(ask(tag, some, asked))),
      ),
    ),
  )
  return located
}
