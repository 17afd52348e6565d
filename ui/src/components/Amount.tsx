// A value with its unit, which is explained where one points at it.

import { explainUnit, formatValue, type Unit } from '../lib/format.ts';

export function Amount(props: { value: number; unit: Unit }) {
  return <b title={explainUnit(props.unit)}>{formatValue(props.value, props.unit)}</b>;
}
