# What memory is worth: the fastest step within so much. Called by memory.sh --plot.
set terminal svg size 720,420 font "sans,13" background "white"
set output output
set xlabel "GiB of a device"
set ylabel "milliseconds of a step"
set title what
set key right top
set grid
set yrange [0:*]
plot data using 1:2 with fsteps linecolor rgb "#999999" notitle, \
     data using 1:(stringcolumn(3) eq "true" ? $2 : NaN) with points pointtype 7 title "fits", \
     data using 1:(stringcolumn(3) eq "false" ? $2 : NaN) with points pointtype 6 title "needs more than there is"
