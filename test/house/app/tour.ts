/** A program of a user: a queue, a schedule and a graph on the store of a URL. It is compiled to an ES module and to CommonJS. */
import { type Job, Millpond } from 'millpond'

interface Mail {
  to: string
}

async function main(url: string): Promise<void> {
  const pond = await Millpond.open(url)
  const mails = pond.queue<Mail, string>('mails', { retry: { attempts: 3 } })
  mails.work(async ({ data }: Job<Mail>) => `sent to ${data.to}`)
  const { id } = await mails.push({ to: 'ada@example.org' })
  console.log(await pond.result<string>(id))

  const beats = pond.queue<{ name: string }>('beats')
  const beat = new Promise<string>((resolve) => {
    beats.work(({ data }) => resolve(data.name))
  })
  await pond.schedule('beat', 'every 1s', beats, { name: 'a beat' })
  console.log(await beat, (await pond.schedules.list()).length)

  const [first, second] = await pond.pushAll([
    [mails, { to: 'first' }],
    [mails, { to: 'second' }, { after: [0] }],
  ])
  await pond.result(second?.id ?? '')
  console.log((await pond.graph(first?.id ?? ''))?.nodes.length)
  await pond.close()
}

void main(process.argv[2] ?? 'memory:')
