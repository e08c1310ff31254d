import './postgres-sets.test.ts'
