import './limits-turns.test.ts'
