import { batch } from 'millpond'

const loadUser = batch(async (ids: number[]) => ids.map((id) => ({ id })))
