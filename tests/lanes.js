// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Draws the timeline `timeline` (Chrome trace events) as lanes, into an SVG of its own in the document: all of it, or, of a
// program that repeats itself, the last time.
'use strict';
const NS='http://www.w3.org/2000/svg',LEFT=150,WIDTH=1230,ROW=17,GAP=8;
const events=timeline.traceEvents,slices=events.filter(e=>e.ph==='X');
const names={},order={};
for(const e of events)if(e.ph==='M'){
  const key=e.name.startsWith('process')?`${e.pid}`:`${e.pid}/${e.tid}`;
  if(e.name.endsWith('_name'))names[key]=e.args.name;else order[key]=e.args.sort_index}

// The window: from the last taskwait but one to the end of the last, or all.
const work=slices.filter(e=>e.cat==='device').sort((a,b)=>a.ts-b.ts),until=e=>e.ts+e.dur;
const waits=slices.filter(e=>e.name==='taskwait').sort((a,b)=>a.ts-b.ts).slice(-2);
const first=Math.min(...slices.map(e=>e.ts)),last=Math.max(...slices.map(until));
const from=waits.length>1?until(waits[0]):first,end=waits.length>1?until(waits[1]):last;
const span=end-from,x=ts=>LEFT+(ts-from)/span*WIDTH,seen=e=>e.ts<end&&e.ts+e.dur>from;

// Lanes, each with rows for slices within slices.
const lanes=new Map();
for(const e of slices.filter(seen)){
  const key=`${e.pid}/${e.tid}`;
  if(!lanes.has(key))lanes.set(key,{key,pid:e.pid,slices:[],rows:1});
  lanes.get(key).slices.push(e)}
const sorted=[...lanes.values()].sort((a,b)=>(order[a.pid]-order[b.pid])||(order[a.key]-order[b.key]));
const svg=document.createElementNS(NS,'svg');
function make(tag,attributes,text){
  const e=document.createElementNS(NS,tag);
  for(const a in attributes)e.setAttribute(a,attributes[a]);
  if(text!==undefined)e.textContent=text;
  svg.appendChild(e);return e}
const fills={device:['#4dabf7','#69db7c','#ffa94d','#b197fc','#f783ac','#38d9a9'],host:['#d8f5a2'],issue:['#ffd43b'],wait:['#dee2e6']};
const kinds=[...new Set(work.map(e=>e.name))];
function fill(e){const list=fills[e.cat]||['#ced4da'];return e.cname?'#fa5252':list[Math.max(0,kinds.indexOf(e.name))%list.length]}
const ms=us=>us>=1000?`${(us/1000).toFixed(2)} ms`:`${us.toFixed(1)} us`;
make('text',{x:12,y:20,'font-weight':600},
  `${timeline.otherData.program.split('/').pop()}: ${ms(span)} of ${ms(last-first)}, from ${ms(from)} on`);
let y=36;
for(const lane of sorted){
  const open=[];
  lane.top=y;
  lane.slices.sort((a,b)=>a.ts-b.ts||b.dur-a.dur);
  for(const e of lane.slices){
    while(open.length&&open[open.length-1].ts+open[open.length-1].dur<=e.ts)open.pop();
    e.row=open.length;open.push(e);lane.rows=Math.max(lane.rows,open.length)}
  make('rect',{x:LEFT,y,width:WIDTH,height:lane.rows*ROW,fill:'#f8f9fa'});
  make('text',{x:12,y:y+12},lane.pid===1?names[lane.key]:`${names[lane.pid]} ${names[lane.key]}`);
  for(const e of lane.slices){
    const a=Math.max(x(e.ts),LEFT),b=Math.min(x(e.ts+e.dur),LEFT+WIDTH),top=y+e.row*ROW;
    const box=make('rect',{x:a.toFixed(1),y:top+1,width:Math.max(b-a,.7).toFixed(1),height:ROW-2,fill:fill(e),
      stroke:e.args&&e.args.critical&&e.cat==='device'?'#d9480f':'#868e96','stroke-width':e.args&&e.args.critical?1.4:.4});
    const title=document.createElementNS(NS,'title');title.textContent=`${e.name}, ${ms(e.dur)}`;box.appendChild(title);
    if(b-a>6.2*e.name.length)make('text',{x:(a+3).toFixed(1),y:top+12,'font-size':9},e.name)}
  y+=lane.rows*ROW+GAP}

// Arrows, from one lane to another.
const begun={};
for(const e of events){
  if(e.ph==='s')begun[e.id]=e;
  if(e.ph!=='f'||e.ts<from||e.ts>end)continue;
  const a=begun[e.id],up=lanes.get(`${a.pid}/${a.tid}`),down=lanes.get(`${e.pid}/${e.tid}`);
  if(!up||!down||a.ts<from)continue;
  const ax=x(a.ts),bx=x(e.ts),ay=up.top+ROW/2,by=down.top+ROW/2,m=(ax+bx)/2;
  make('path',{d:`M${ax.toFixed(1)} ${ay}C${m.toFixed(1)} ${ay} ${m.toFixed(1)} ${by} ${bx.toFixed(1)} ${by}`,fill:'none',
    stroke:'#1971c2','stroke-width':.9,class:'arrow'})}

// Tasks in flight, as steps.
const counter=events.filter(e=>e.ph==='C'&&e.name==='tasks in flight');
const most=Math.max(1,...counter.filter(e=>e.ts>=from&&e.ts<=end).map(e=>e.args.tasks));
let path='',value=0;
const height=40,level=n=>(y+height-n/most*(height-4)).toFixed(1);
for(const e of counter){
  if(e.ts<=from){value=e.args.tasks;continue}
  if(e.ts>end)break;
  if(!path)path=`M${LEFT} ${level(value)}`;
  path+=`H${x(e.ts).toFixed(1)}V${level(e.args.tasks)}`}
make('rect',{x:LEFT,y,width:WIDTH,height,fill:'#f8f9fa'});
make('text',{x:12,y:y+16},`tasks in flight, up to ${most}`);
make('path',{d:(path||`M${LEFT} ${level(value)}`)+`H${LEFT+WIDTH}`,fill:'none',stroke:'#495057'});
y+=height+GAP;
for(let i=0;i<=5;i++){
  make('text',{x:LEFT+WIDTH*i/5-(i===5?40:0),y:y+12,'font-size':10,fill:'#495057'},ms(span*i/5))}
y+=22;
svg.setAttribute('xmlns',NS);svg.setAttribute('width',LEFT+WIDTH+12);svg.setAttribute('height',y);
svg.setAttribute('font-family','Helvetica,Arial,sans-serif');svg.setAttribute('font-size',11);
const ground=document.createElementNS(NS,'rect');
for(const [k,v] of [['width','100%'],['height','100%'],['fill','#fff']])ground.setAttribute(k,v);
svg.prepend(ground);
document.body.appendChild(svg);
document.title=`${sorted.length} lanes, ${svg.querySelectorAll('.arrow').length} arrows`;
