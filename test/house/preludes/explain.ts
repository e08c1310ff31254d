import { Millpond } from 'millpond'

const pond = await Millpond.open('memory:')
const reports = pond.queue<string>('reports', { limits: { group: { running: 2 } } })
const { id } = await reports.push('sales', { group: 'tenant-7' })
