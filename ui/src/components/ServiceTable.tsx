// Services as rows of a table.

import { createMemo } from 'solid-js';
import { formatCost, type Prices } from '../lib/cost.ts';
import { explainUnit, formatShare, formatValue } from '../lib/format.ts';
import type { Order, Ranked, RankedService } from '../models/ranked.ts';
import { Grid, type Column } from './Grid.tsx';

export interface ServiceTableProps {
  ranked: Ranked;
  services: readonly RankedService[];
  /** The label that services are grouped by, empty for none. */
  label: string;
  order: Order;
  prices: Prices | null;
  onOrder: (order: Order) => void;
  onOpen: (service: RankedService) => void;
}

export function ServiceTable(props: ServiceTableProps) {
  const costOf = (cost: number | null): string => (cost === null || props.prices === null ? '' : formatCost(cost, props.prices));
  const columns = createMemo((): Column<RankedService>[] => [
    { key: 'name', label: 'Service', class: 'ellipsis', title: ({ name }) => name, cell: (row) => row().name },
    ...(props.label === '' ? [] : [{ key: 'group', label: props.label, fixed: true, class: 'ellipsis', title: ({ group }: RankedService) => group, cell: (row: () => RankedService) => row().group || '(none)' }]),
    { key: 'cpu', label: 'CPU', class: 'number', title: () => explainUnit('cores'), cell: (row) => valueOf(row().cpu?.mean, 'cores') },
    { key: 'memory', label: 'Memory', class: 'number', title: () => explainUnit('bytes'), cell: (row) => valueOf(row().memory?.mean, 'bytes') },
    { key: 'share', label: `Share of ${props.ranked.what}`, fixed: true, class: 'number', cell: (row) => (row().share === null ? '' : formatShare(row().share ?? 0)) },
    ...(props.prices === null ? [] : [{ key: 'cost', label: 'Cost per month', class: 'number', cell: (row: () => RankedService) => costOf(row().cost) }]),
  ]);
  return (
    <div class="service-table" classList={{ grouped: props.label !== '', priced: props.prices !== null }}>
      <Grid
        label="Services"
        class="service-grid"
        columns={columns()}
        rows={props.services}
        height={26}
        sort={{ key: props.order, down: props.order !== 'name' }}
        none="No services"
        onSort={(key) => props.onOrder(key as Order)}
        onSelect={props.onOpen}
      />
    </div>
  );
}

const valueOf = (mean: number | undefined, unit: 'cores' | 'bytes'): string => (mean === undefined ? '–' : formatValue(mean, unit));
