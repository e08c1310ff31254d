import express from 'express'
import { Millpond } from 'millpond'

const url = 'memory:'
const app = express()
// After the block:
await pond.close(signals)
