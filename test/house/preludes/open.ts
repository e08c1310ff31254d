import { Millpond } from 'millpond'
