import { Millpond } from 'millpond'

type Report = string
const report = 'sales'
const pond = await Millpond.open('memory:')
