// A value with its unit. A tooltip explains the unit.

import { explainUnit, formatValue, type Unit } from '../lib/format.ts';

export function Amount(props: { value: number; unit: Unit }) {
  return <b title={explainUnit(props.unit)}>{formatValue(props.value, props.unit)}</b>;
}
