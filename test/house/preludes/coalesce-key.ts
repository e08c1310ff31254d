import { coalesceResponses } from 'millpond/web'

const userOf = (headers: Headers) => headers.get('cookie') ?? ''
